module muster.example

go 1.26.8
