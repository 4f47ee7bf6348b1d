"""Numbers as people write them."""

import math


def shown(value: float, digits: int = 4) -> str:
    """A number as people write it.

    >>> shown(11696), shown(99.97072), shown(0.0107), shown(-0.0)
    ('11,696', '99.97', '0.0107', '0')
    """
    if not math.isfinite(value):
        return f"{value}".replace("inf", "∞").replace("nan", "-")
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{min(places, 9)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def percent(value: float) -> str:
    """A share.

    >>> percent(0.4188), percent(0.5)
    ('41.9 %', '50 %')
    """
    return f"{shown(100 * value, 3)} %"


def signed(share: float) -> str:
    """A share more or less.

    >>> signed(-0.0931), signed(0.0)
    ('-9.3 %', '+0.0 %')
    """
    return f"{100 * share:+.1f} %".replace("-0.0 %", "+0.0 %")
