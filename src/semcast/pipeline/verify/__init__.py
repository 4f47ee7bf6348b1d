"""Recorded histories of any size against the properties of `semcast.specs`, on Spark."""

from semcast.pipeline.verify.events import Recorded, survey
from semcast.pipeline.verify.forms import FORMS, wanted_properties
from semcast.pipeline.verify.job import verify
from semcast.pipeline.verify.memory import fits_here, verify_here
from semcast.pipeline.verify.verdicts import Offence, Options, Report, Verdict

__all__ = [
    "FORMS",
    "Offence",
    "Options",
    "Recorded",
    "Report",
    "Verdict",
    "fits_here",
    "survey",
    "verify",
    "verify_here",
    "wanted_properties",
]
