"""The libraries we compare with: one file a peer, each with a `PEER`."""
