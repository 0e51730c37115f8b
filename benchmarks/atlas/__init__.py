"""The atlas: problems drawn at random, ours and every applicable peer on each, at equal quality."""
