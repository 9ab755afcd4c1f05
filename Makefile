# Both do all their own set-up on a machine with Python 3.11+ and nothing else.
PYTHON ?= python3

.PHONY: run test doctor screenshots

run:
	@$(PYTHON) -m rag.launch serve

test:
	@$(PYTHON) -m rag.launch test

doctor:
	@$(PYTHON) -m rag.launch doctor
