"""The live driver: protocol stacks over real UDP sockets and real clocks, in a thread of their own."""
