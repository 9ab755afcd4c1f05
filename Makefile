# All do all their own set-up on a machine with Python 3.11+ and nothing else.
PYTHON ?= python3

.PHONY: run test coverage doctor screenshots

run:
	@$(PYTHON) -m rag.launch serve

test:
	@$(PYTHON) -m rag.launch test

# Counting which lines ran takes two thirds more processor time than running them.
coverage:
	@$(PYTHON) -m rag.launch test --cov --cov-report=term:skip-covered

doctor:
	@$(PYTHON) -m rag.launch doctor
