"""What the console sessions of the docs are held to: every line, but for seconds and bytes."""

import pytest

import consoles


def test_commands_and_what_they_print():
    block = "$ cat > a <<'END'\n> one\n> END\n$ wc -l a\n1 a\n\n$ true\n"
    assert consoles.steps(block) == [("cat > a <<'END'\none\nEND", ""), ("wc -l a", "1 a"), ("true", "")]


@pytest.mark.parametrize(
    ("wanted", "said", "same"),
    [
        ("2 pairs\n... s, peak memory ... MB → out", "2 pairs  \n0.4 s, peak memory 1,329 MB → out\n", True),
        ("2 pairs\n... s, peak memory ... MB → out", "3 pairs\n0.4 s, peak memory 1,329 MB → out", False),
        ("... s → out", "soon s → out", False),
        ("2 pairs\n...", "2 pairs\n0.4 s", False),
        ("...", "anything", False),
        ("0.8... near", "0.83 near", False),
        ("Usage: likewise [ARGS]...", "Usage: likewise [ARGS]...", True),
        ("", "", True),
        ("", "unexpected", False),
    ],
)
def test_only_measurements_may_differ(wanted, said, same):
    assert consoles.is_printed(wanted, said) is same


def test_a_session_goes_on_in_its_folder_and_shows_errors(tmp_path):
    with consoles.Session(tmp_path) as session:
        assert session.run("echo one > a.txt; cat a.txt") == "one\n"
        assert session.run("cat a.txt nothing.txt").startswith("one\ncat: ")
        assert "No such command 'dedub'" in session.run("likewise dedub a.txt")
