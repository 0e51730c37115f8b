"""Fisher, LDA, QDA and their regularised kin: class moments from one pass, then algebra."""
