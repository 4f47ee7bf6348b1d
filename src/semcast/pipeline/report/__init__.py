"""The papers' figures beside ours, in one HTML page. Only `profiles` needs Spark."""
