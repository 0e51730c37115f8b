"""How columns become features: sums that merge, and categories by what their classes say of them."""
