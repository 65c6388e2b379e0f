"""What the product answers to some 4,000 requests, as digests: a refactoring changes none of them."""
