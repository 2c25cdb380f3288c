//! The parts of the system that every command sees.
//!
//! Effects: the local disk (reads).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Folders with programs and libraries.
const PROGRAMS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
];

/// Entries of `/etc` that programs need and that hold no secrets. Everything else of `/etc` is not
/// there.
const SETTINGS: &[&str] = &[
    "alternatives",
    "bash.bashrc",
    "bash_completion.d",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "default/locale",
    "dpkg/origins",
    "emacs",
    "fonts",
    "gai.conf",
    "host.conf",
    "inputrc",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "java-25-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "lsb-release",
    "magic",
    "magic.mime",
    "mailcap",
    "maven",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "papersize",
    "perl",
    "pki/ca-trust",
    "pki/tls/certs",
    "profile",
    "profile.d",
    "protocols",
    "python3",
    "python3.11",
    "python3.12",
    "python3.13",
    "rpc",
    "services",
    "shells",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
    "vim",
    "xdg",
    "xml",
];

/// A part of the system in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SystemPart {
    /// A file or folder, read-only.
    Shown(PathBuf),
    /// A symbolic link.
    Link { at: PathBuf, to: OsString },
}

/// Returns the parts of the system that exist on this machine.
pub(super) fn system_parts() -> Vec<SystemPart> {
    let settings = SETTINGS.iter().map(|name| Path::new("/etc").join(name));
    let programs = PROGRAMS.iter().map(PathBuf::from);
    programs.chain(settings).filter_map(part).collect()
}

/// Returns a part as it is here: a folder, or a link such as `/bin` to `usr/bin`.
fn part(path: PathBuf) -> Option<SystemPart> {
    let found = path.symlink_metadata().ok()?;
    match found.is_symlink() {
        true => Some(SystemPart::Link {
            to: path.read_link().ok()?.into_os_string(),
            at: path,
        }),
        false => Some(SystemPart::Shown(path)),
    }
}
