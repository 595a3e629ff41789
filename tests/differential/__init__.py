"""Random programs, entries and packets on the softswitch and on a real simple_switch_grpc, compared."""
