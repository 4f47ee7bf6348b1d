"""`python -m tools.wheel.environment WHEEL FOLDER`: an environment with this wheel, to run the tests in.

What else they need is found in the environment that runs this, where the package itself is a link to the
checkout: the wheel comes first.
"""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path


def main() -> None:
    """Make it."""
    wheel, folder = sys.argv[1:]
    venv.create(folder, with_pip=False, symlinks=True)
    python = str(Path(folder) / "bin" / "python")
    install = ["--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *install], check=True)
    (site,) = (Path(folder) / "lib").glob("python3.*/site-packages")
    (site / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf8")


if __name__ == "__main__":
    main()
