"""Files that the build writes only when it must."""

import os

from build_tools.files import update


def test_files_are_updated_when_they_are_missing_or_a_source_is_newer(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"

    def updated() -> bool:
        with update(target, [source]) as changed:
            if changed:
                target.write_text(source.read_text())
        return changed

    source.write_text("first")
    os.utime(source, (1, 1))
    assert [updated(), updated()] == [True, False]
    source.write_text("second")
    os.utime(source, (target.stat().st_mtime + 1,) * 2)
    assert updated()
    assert target.read_text() == "second"
    target.unlink()
    assert updated()


def test_a_source_that_changes_during_an_update_leads_to_another_one(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.touch()
    with update(target, [source]):
        target.touch()
        source.touch()
    with update(target, [source]) as changed:
        assert changed
