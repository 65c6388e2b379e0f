"""What the product answers to some two and a half thousand requests, as digests: a refactoring changes none of them."""
