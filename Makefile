# make demo   walk three times through real ROS 2 topics, told by sensors alone, and write report/
# make demo_real_time   the same in real time: nothing waits for the controller; needs two idle cores
# make test   run all tests
# make docs   write the pages as a site into build/site/, to be opened without a network
# make clean  remove the virtual environment and everything that was made
#
# Needs Linux, make and Python 3.10 or later with venv; everything else goes into .venv.
# Another Python: make demo PYTHON=python3.12. Options of pytest: make test ARGS="-k planner".

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NEXT := Next, once in each new shell: source $(VENV)/bin/activate; then: contact_id --help
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input

export OMP_NUM_THREADS ?= 1

# The virtual environment brings its own ROS 2; a sourced ROS installation must not mix with it.
unexport PYTHONPATH PYTHONHOME AMENT_PREFIX_PATH AMENT_CURRENT_PREFIX CMAKE_PREFIX_PATH COLCON_PREFIX_PATH
unexport RMW_IMPLEMENTATION ROS_PYTHON_VERSION ROS_VERSION _ROS_WHEELS_BOOTSTRAP_COMPLETE
ifdef ROS_DISTRO
unexport ROS_DISTRO LD_LIBRARY_PATH
endif

.PHONY: demo demo_real_time test docs install clean

demo: $(STAMP)
	$(BIN)/contact_id demo --state estimated --output report
	@echo "$(NEXT)"

demo_real_time: $(STAMP)
	$(BIN)/contact_id demo --mode real_time --state estimated --output report

# A queue of files for three processes on two cores: tests of nodes wait for most of their time, and those in real time
# run one after another. A process that crashes fails its test, and another one goes on with the queue; one that hangs
# fails it after 10 minutes. Kernels are compiled before, once: processes of tests that begin together each compile all,
# and those that wait for them give up.
test: $(STAMP)
	$(BIN)/contact_id compile
	$(BIN)/python -m pytest $(or $(ARGS),--numprocesses=3 --dist=loadfile --no-loadscope-reorder --timeout=600)

# A warning, such as a link that leads nowhere, is an error.
docs: $(STAMP)
	@$(BIN)/python -m sphinx -b html -W --keep-going -q -c docs -d build/doctrees . build/site
	@echo "Written: build/site/index.html"

install: $(STAMP)
	@echo "$(NEXT)"

$(STAMP): setup.py setup.cfg Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	  echo "make: '$(PYTHON)' is $$($(PYTHON) --version 2>&1); Python 3.10 or later is needed." \
	       "Name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "make: '$(PYTHON)' has no venv; on Debian and Ubuntu: apt install python3-venv" >&2; \
	  exit 1; }
	@echo "Installing into $(VENV): some minutes the first time, about 2.5 GB on disk"
# An old pip cannot work out which versions fit together.
	@while sleep 7; do echo "  $$(du -sm $(VENV) | cut -f 1) of about 2500 MB are there"; done & ticker=$$!; \
	  $(PYTHON) -m venv $(VENV) && $(PIP) install -qq --upgrade pip && \
	  $(PIP) install -qq --editable '.[ros,simulation,test]'; code=$$?; kill $$ticker; exit $$code
	@touch $@

clean:
	rm -rf $(VENV) report build dist install log *.egg-info .pytest_cache .hypothesis
	find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
