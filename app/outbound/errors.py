"""What can go wrong on the way out: one sentence for each kind, the same for every cause.

The sentence may be shown to a stranger: it tells a port scanner nothing. `reason` is for the operator's log and the
tests, and where an address was refused as it is written, for whoever wrote it; it never holds an address, a host name
or anything that the other side sent.
"""


class OutboundError(Exception):
    """A fetch that came to nothing; one of those below."""

    sentence = "The file could not be fetched."

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(self.sentence)


class BlockedError(OutboundError):
    """The policy forbids it: the address, a host's IP address, or where a redirect leads."""

    sentence = "This server may not fetch from there."


class UnreachableError(OutboundError):
    """No such name, no connection, or a certificate that does not belong to the host."""

    sentence = "The other server cannot be reached."


class TooSlowError(OutboundError):
    """The whole took longer than it may."""

    sentence = "The other server took too long to answer."


class TooLargeError(OutboundError):
    """More bytes than are allowed: headers, what came over the line, or what it unpacks to."""

    sentence = "The other server's answer is too large."


class BadAnswerError(OutboundError):
    """An answer, but a broken one: cut short, packed in an unknown way, sent round in circles."""

    sentence = "The other server's answer is not what it should be."


class WrongTypeError(BadAnswerError):
    """An answer of a media type that was not wanted: a web page in place of a file."""
