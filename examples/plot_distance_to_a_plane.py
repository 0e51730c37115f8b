"""
The distance of a point to a hyperplane
=======================================

For f(x) = wᵀx + b the signed distance is f(x)/‖w‖, and the nearest point of the plane is x − f(x) w/‖w‖². In the picture
every row is joined to its foot: all joints are parallel to w, which is at a right angle to the boundary. Twice w and b are
the same plane and the same distances, so only the ratio of f to ‖w‖ has a meaning.
"""

import matplotlib.pyplot as plt
import numpy as np

from separatrix import LinearDiscriminantAnalysis
from separatrix.plots import DecisionBoundaryDisplay

rng = np.random.default_rng(1)
y = np.repeat([0, 1], 12)
X = rng.normal(size=(24, 2)) + 2.2 * y[:, None]
model = LinearDiscriminantAnalysis().fit(X, y)
plane = model.boundary()
feet, distances = plane.project(X), plane.signed_distance(X)
assert np.allclose(np.linalg.norm(X - feet, axis=1), abs(distances)) and np.allclose(plane(feet), 0)

ax = DecisionBoundaryDisplay.from_estimator(model, X, y, eps=1.0).ax_
ax.plot(*np.stack([X, feet], axis=1).transpose(2, 1, 0), color="grey", linewidth=0.8, zorder=1)
far = np.argmax(distances)
ax.annotate(f"distance {distances[far]:.2f}", X[far], (8, -14), textcoords="offset points", color="grey")
ax.annotate(
    "",
    feet[far] + plane.normal / np.linalg.norm(plane.normal),
    feet[far],
    arrowprops={"arrowstyle": "-|>", "color": "grey"},
)
ax.set_aspect("equal")
ax.set_title("rows, their feet on the boundary, and w/‖w‖")
plt.show()
