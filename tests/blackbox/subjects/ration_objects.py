"""Prints what Ration's chart installs but its pods."""

import sys

import yaml

from hack.chart import helm

if __name__ == "__main__":
    sys.stdout.write(yaml.safe_dump_all(helm.without_workloads(), sort_keys=False))
