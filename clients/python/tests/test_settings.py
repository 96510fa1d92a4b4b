"""Address and token from arguments, environment and profiles."""

from __future__ import annotations

from pathlib import Path

import pytest
from tao_slurm import Client, SettingsError
from tao_slurm.settings import DEFAULT_URL, Settings, read_settings

CONFIG = """
profile = "lab"

[profiles.lab]
url = "https://lab.example.org/"
token_file = "lab-token"

[profiles.prod]
url = "https://prod.example.org/slurm"
token = "tsl_prod"

[profiles.both]
token = "tsl_a"
token_file = "b"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "lab-token").write_text("tsl_lab\n")
    (tmp_path / "config.toml").write_text(CONFIG)
    return tmp_path / "config.toml"


def seen(settings: Settings) -> tuple[str, str | None]:
    return settings.url, settings.authorization and settings.authorization.removeprefix("Bearer ")


def test_without_settings_the_address_is_the_services_default(tmp_path: Path) -> None:
    assert seen(read_settings(environ={}, config=tmp_path / "none")) == (DEFAULT_URL, None)


def test_arguments_override_the_environment_which_overrides_the_profile(config: Path) -> None:
    environ = {"TAO_SLURM_URL": "http://env", "TAO_SLURM_TOKEN": "tsl_env"}
    assert seen(read_settings("http://arg", "tsl_arg", environ=environ, config=config)) == ("http://arg", "tsl_arg")
    assert seen(read_settings(environ=environ, config=config)) == ("http://env", "tsl_env")
    assert seen(read_settings(environ={}, config=config)) == ("https://lab.example.org", "tsl_lab")
    assert seen(read_settings(environ={"TAO_SLURM_PROFILE": "prod"}, config=config)) == ("https://prod.example.org/slurm", "tsl_prod")
    assert seen(read_settings(profile="prod", environ=environ, config=config)) == ("https://prod.example.org/slurm", "tsl_prod")


def test_the_token_of_a_profile_goes_to_no_other_address(config: Path) -> None:
    assert seen(read_settings("http://other", environ={}, config=config)) == ("http://other", None)
    assert seen(read_settings(environ={"TAO_SLURM_URL": "http://other"}, config=config)) == ("http://other", None)
    assert seen(read_settings("https://lab.example.org", environ={}, config=config)) == ("https://lab.example.org", "tsl_lab")


def test_not_even_with_an_argument(config: Path) -> None:
    assert seen(read_settings("http://other", profile="prod", environ={}, config=config)) == ("http://other", None)


def test_an_empty_variable_is_none(tmp_path: Path) -> None:
    environ = {"TAO_SLURM_URL": "", "TAO_SLURM_TOKEN": "", "TAO_SLURM_PROFILE": ""}
    assert seen(read_settings(environ=environ, config=tmp_path / "none")) == (DEFAULT_URL, None)


def test_the_file_is_read_from_the_home_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    place = tmp_path / ".config" / "tao-slurm"
    place.mkdir(parents=True)
    (place / "config.toml").write_text('[profiles.a]\nurl = "http://a"\ntoken_file = "~/secret"\n')
    (tmp_path / "secret").write_text("tsl_home")
    assert seen(read_settings(profile="a")) == ("http://a", "tsl_home")
    assert repr(Client(profile="a")) == "Client('http://a')"
    place.rename(tmp_path / "tao-slurm")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert seen(read_settings(profile="a")) == ("http://a", "tsl_home")


@pytest.mark.parametrize(
    ("profile", "message"),
    [("none", "no profile 'none'; profiles: both, lab, prod"), ("both", "has both token and token_file")],
)
def test_an_unusable_profile_is_an_error(config: Path, profile: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_settings(profile=profile, environ={}, config=config)


@pytest.mark.parametrize("content", ["profile = ", "profile = 5", "[profiles]\nlab = 5", "[profiles.lab]\nurl = 5", "\x00", "# " + "x" * 2_000_000])
def test_a_broken_file_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.toml").write_text(content)
    with pytest.raises(SettingsError, match=r"config\.toml"):
        read_settings(environ={"TAO_SLURM_PROFILE": "lab"}, config=tmp_path / "config.toml")


def test_a_missing_token_file_is_an_error(config: Path) -> None:
    (config.parent / "lab-token").unlink()
    with pytest.raises(SettingsError, match="lab-token cannot be read: No such file"):
        read_settings(environ={}, config=config)


@pytest.mark.parametrize("url", ["", "slurm.example.org", "ftp://a", "http://", "http://a?b=c", "http://a#b", "http://a:99999", "http://[::"])
def test_an_address_must_be_one(url: str) -> None:
    with pytest.raises(SettingsError):
        Settings(url)


@pytest.mark.parametrize("token", ["", " ", "a b", "tsl_a\r\nX-Other: 1", "tsl_ä", "\x7f"])
def test_a_token_that_is_none_is_an_error_that_does_not_show_it(token: str) -> None:
    with pytest.raises(SettingsError) as raised:
        Settings("http://a", token)
    assert "tsl_" not in str(raised.value)


def test_an_address_with_a_password_is_an_error_that_does_not_show_it() -> None:
    with pytest.raises(SettingsError) as raised:
        Settings("http://me:hidden@a")
    assert "hidden" not in str(raised.value)
