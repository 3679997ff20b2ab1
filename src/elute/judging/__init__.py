"""What a search stack consumes: judgments with grades, and click data that gradient-boosted rankers train on."""
