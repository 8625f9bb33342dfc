"""Layers that compute Algorithm 1, and do not start where they say, or cannot leave where they start."""

from __future__ import annotations

from tests.gallery.entry import Fault, fault
from tests.gallery.plain import Plain


class FirstPicked(Plain):
    def start(self) -> None:
        self.copy()
        self.pick(0)


class MeanPicked(Plain):
    def start(self) -> None:
        self.copy()
        self.pick(None)


class SpareZeroed(Plain):
    """Pseudo-head 0 is the base head; the others have zero coefficients, and are meant to be off."""

    def start(self) -> None:
        self.copy()
        self.pick(0)
        for alpha in (self.alpha_q, self.alpha_k, self.alpha_v):
            alpha[:, :, 1:] = 0


FAULTS: tuple[Fault, ...] = (
    fault("first pseudo-head under the flat mask", "R picks the first of P copies, which sees its own key once only.",
          FirstPicked, "start", options={"mask": "flat"},
          note="Past keys count P times, the own key once. Under the flat mask copies see differently, and separate."),
    fault("mean of the pseudo-heads under the flat mask", "R averages the P copies, which see their own key 1 to P "
          "times.", MeanPicked, "start", options={"mask": "flat"}),
    fault("rotary positions of virtual tokens", "Pseudo-token j of token n turns by n P + j, and the layer promises to "
          "start as multi-head attention.", Plain, "start", options={"mask": "flat", "rope": "virtual"},
          note="Copies of a key at P positions are P different keys, and the picked query stands at another one."),
    fault("spare pseudo-heads zeroed", "Pseudo-heads are switched off with zeros, which stay in the softmax.",
          SpareZeroed, "start, separation",
          note="A zero key scores 0 and takes weight exp(0). The P - 1 zeroed ones are alike, and stay so."),
    fault("plain copies", "All pseudo-heads start as copies, without a mask.", FirstPicked, "separation",
          note="Keys and values of the copies receive equal gradients for ever."),
    fault("plain copies under the token mask", "All pseudo-heads start as copies, under the token mask.", MeanPicked,
          "separation", options={"mask": "token"}),
)
