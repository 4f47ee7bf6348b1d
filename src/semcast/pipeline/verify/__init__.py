"""Recorded histories of any size against the properties of `semcast.specs`, on Spark."""

from semcast.pipeline.verify.files import Recorded, survey
from semcast.pipeline.verify.here import fits_here, verify_here
from semcast.pipeline.verify.job import Options, Report, verify, wanted_properties
from semcast.pipeline.verify.properties import FORMS
from semcast.pipeline.verify.verdicts import Offence, Verdict

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
