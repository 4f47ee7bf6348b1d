"""Recorded histories of any size against the properties of `semcast.specs`, on Spark."""

from semcast.pipeline.verify.files import Recorded, survey
from semcast.pipeline.verify.job import Options, Report, verify, wanted_properties
from semcast.pipeline.verify.verdicts import FORMS, Offence, Verdict

__all__ = [
    "FORMS",
    "Offence",
    "Options",
    "Recorded",
    "Report",
    "Verdict",
    "survey",
    "verify",
    "wanted_properties",
]
