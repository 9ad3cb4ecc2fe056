"""The report: one HTML page about a finished run, made from its folder and its inputs."""

from likewise.report.write import can_report, write_report

__all__ = ["can_report", "write_report"]
