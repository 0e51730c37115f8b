"""From posterior to action: loss matrices, the reject option, risk, calibration, prior shift, reductions to two classes."""
