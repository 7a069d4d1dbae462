from driver.cel import checked
LIMIT = 1_000_000
def estimated(tree: checked.Tree) -> int:
    return 0
