"""Files that elute wrote and reads again, checked once where they enter: what lies behind may trust them."""
