"""`envlock upgrade`: what newer packages change."""
