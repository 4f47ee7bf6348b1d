"""Loggers as processes, and their logs: what `semcast logger` and `semcast log` do."""

from semcast.logger.home import Home, open_home
from semcast.logger.node import LoggerNode, Served
from semcast.logger.offline import LogFolder, log_folders

__all__ = ["Home", "LogFolder", "LoggerNode", "Served", "log_folders", "open_home"]
