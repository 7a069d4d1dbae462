module ration.local/kind/kindnet

go 1.26.0
