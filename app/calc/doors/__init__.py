"""Every optimization as a what-if: the same scenario with the door closed and open."""
