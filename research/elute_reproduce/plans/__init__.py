"""Plans carried out in simulated worlds: is what they promise what comes?"""
