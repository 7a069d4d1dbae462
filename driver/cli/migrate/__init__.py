"""`ration migrate`: from the device plugin's configuration to Ration's."""
