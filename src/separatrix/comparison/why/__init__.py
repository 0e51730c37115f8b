"""Why a model decides as it does: importances, effects, single rows, and whether linear rules are enough."""
