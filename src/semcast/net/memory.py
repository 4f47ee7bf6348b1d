"""Memory that is used again at once is not given back to the kernel in between (docs/decisions/0017)."""

_BLOCK = 8 << 20


def keep() -> None:
    """Let the process keep up to twice this block of free memory.

    glibc gives back what is free at the end of its heap as soon as that is more than 128 KiB. The datagrams
    and messages of a window come and go many times a second, and their pages have to be had anew each time.
    The bound rises by itself to twice the size of the largest block that was mapped and given back (dynamic
    adjustment, mallopt(3)): so that is done here, once. Nothing is written to the block, so it takes up
    nothing. Where another allocator is used, this does nothing.
    """
    bytearray(_BLOCK)
