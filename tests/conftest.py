"""What all tests rely on."""

import shutil
import signal

import exponential  # noqa: F401  a family that the package does not know: all laws hold for it, too
import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so shells start jobs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def run(monkeypatch):
    """Run a command of the command line, which the test says that it needs."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("discem.cli._screen._SECONDS_BETWEEN_LINES", 1e9)  # on a slow machine, too

    from typer.testing import CliRunner

    from discem import cli

    def run(*words, input=None):
        return CliRunner().invoke(cli.app, [str(word) for word in words], input=input)

    return run


@pytest.fixture
def good(run):
    """Run a command that must succeed, and give what it prints."""

    def good(*words, input=None):
        result = run(*words, input=input)
        assert result.exit_code == 0, result.output
        return result.stdout

    return good


@pytest.fixture
def bad(run):
    """Run a command that must fail with one line, and give that line."""

    def bad(*words, input=None):
        result = run(*words, input=input)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        (message,) = result.stderr.strip().splitlines()  # older versions of rich begin a line
        assert message.startswith("discem: ")
        return message.removeprefix("discem: ")

    return bad


@pytest.fixture(scope="module")
def browser():
    """Chromium, where one is installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the path")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()
