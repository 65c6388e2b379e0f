"""Why a measurement was refused or failed: a stable code, and a sentence that says what to do."""

from enum import StrEnum


class Fault(StrEnum):
    """The stable code that clients may rely on."""

    NO_LIBRARY = "no_library"
    NOT_LOADABLE = "not_loadable"
    NO_ACCELERATOR = "no_accelerator"
    NO_SUCH_CARD = "no_such_card"
    CARD_FAULT = "card_fault"
    MIG_ENABLED = "mig_enabled"
    CARD_IN_USE = "card_in_use"
    RUNNING = "running"
    NOTHING_MEASURED = "nothing_measured"
    OUT_OF_HOST_MEMORY = "out_of_host_memory"
    TIMEOUT = "timeout"
    DIED = "died"
    GARBLED = "garbled"
    FLOODED = "flooded"
    NOT_STARTED = "not_started"
    NOT_KEPT = "not_kept"
    STOPPED = "stopped"
    UNFORESEEN = "unforeseen"


class MeasureError(Exception):
    """No roofs came of it. `detail` fills the sentence's gap: a library's name, a share, a signal; never a path."""

    def __init__(self, fault: Fault, detail: str = "") -> None:
        self.fault, self.detail = fault, detail
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """One plain sentence for a person."""
        return _MESSAGES[self.fault].replace("{}", self.detail or "it")

    def document(self) -> dict[str, str]:
        """The JSON-ready form: `code` and `message`."""
        return {"code": self.fault.value, "message": self.message}


_MESSAGES: dict[Fault, str] = {
    Fault.NO_LIBRARY: "Neither torch nor cupy is installed beside the server; a card is measured with one of them.",
    Fault.NOT_LOADABLE: "What is installed as {} cannot be loaded; the server's log has its words.",
    Fault.NO_ACCELERATOR: "There is no accelerator that {} can use; the processor is no stand-in for one.",
    Fault.NO_SUCH_CARD: "There is no card of that number. They count from 0; cards that can be seen: {}.",
    Fault.CARD_FAULT: "The card cannot be measured now: {}",
    Fault.MIG_ENABLED: "The card is split into MIG instances; what a slice reaches is no roof of the card.",
    Fault.CARD_IN_USE: "Other programs use the card ({}); what is measured beside them is no roof. Stop them first.",
    Fault.RUNNING: "A measurement is under way on this machine; there is one at a time.",
    Fault.NOTHING_MEASURED: "Nothing could be measured: {}.",
    Fault.OUT_OF_HOST_MEMORY: "The measurement wanted more of the machine's memory than it may have.",
    Fault.TIMEOUT: "The measurement took longer than {} and was ended.",
    Fault.DIED: "The measurement ended without a result ({}); the server's log has its last words.",
    Fault.GARBLED: "The measurement answered with something that is no result.",
    Fault.FLOODED: "The measurement wrote more than a result can be, and was ended.",
    Fault.NOT_STARTED: "The process that measures could not be started.",
    Fault.NOT_KEPT: "The card was measured, but the result could not be written to the data folder.",
    Fault.STOPPED: "The measurement was stopped.",
    Fault.UNFORESEEN: "Something unforeseen went wrong; the server's log has it.",
}
