"""What all tests share."""

collect_ignore = ["toy"]  # a family of stacks: who needs it imports it
