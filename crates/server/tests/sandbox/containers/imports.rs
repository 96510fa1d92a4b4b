//! What `enroot import` prints, and the code that it ends with.

use super::{Case, Place, Row, hides, shows};

pub(super) fn prepare(place: &Place) {
    place.guard("basic", "Basic ann secret");
    place.guard("dollar", "Basic ann $HOME");
    place.guard("quoted", "Basic ann \"secret\"");
    place.guard("blank", "Basic ann two words");
    place.guard("bearer", "Bearer ann secret");
    place.fail("tls", "curl 35 OpenSSL/3.0.17: error:0A00010B:SSL routines::wrong version number");
    place.fail("private", "curl 60 SSL certificate problem: unable to get local issuer certificate");
    place.fail("down", "http 503");
    place.fail("torn", "checksum");
}

const RECORDED: &str = "recorded output of enroot import";

/// Failures on the way to the registry, and of the command itself.
const WAY: &[Row] = &[
    shows(
        "a missing tag is enroot's own error",
        RECORDED,
        &[
            "[INFO] Querying registry for permission grant\n[ERROR] URL https://",
            "/manifests/9 returned error code: 404 Not Found\n",
            "rc=1",
        ],
    ),
    hides("and comes before any other step", RECORDED, &[], &["Permission granted", "Fetching"]),
];

pub(super) const CASES: &[Case] = &[
    Case {
        name: "success",
        script: "enroot import -o image.sqsh docker://$HOST#plain:1; echo; unsquashfs -s image.sqsh",
        rows: &[
            shows("the steps of an import", RECORDED, &[
                "[INFO] Querying registry for permission grant\n[INFO] Permission granted\n",
                "[INFO] Fetching image manifest list\n[INFO] Fetching image manifest\n",
                "[INFO] Downloading 1 missing layers...\n[INFO] Extracting image layers...\n",
                "[INFO] Converting whiteouts...\n[INFO] Creating squashfs filesystem...\n",
                "Parallel mksquashfs: Using",
            ]),
            shows("the file is compressed by lzo, its data are not", RECORDED, &[
                "lzo compressed, data block size 131072",
                "uncompressed data",
                "Found a valid SQUASHFS 4:0 superblock",
                "Compression lzo",
            ]),
        ],
    },
    Case {
        name: "again",
        script: "enroot import -o again.sqsh docker://$HOST#plain:1 2>&1 | grep cache; enroot import -o image.sqsh docker://$HOST#plain:1",
        rows: &[
            shows("layers are cached", RECORDED, &["[INFO] Found all layers in cache\n"]),
            shows("a file is never overwritten", RECORDED, &["[ERROR] File already exists: /lustre/", "/image.sqsh\n", "rc=1"]),
        ],
    },
    Case { name: "missing", script: "enroot import -o x.sqsh docker://$HOST#plain:9", rows: WAY },
    Case {
        name: "unknown host",
        script: "enroot import -o x.sqsh docker://nowhere.$HOST#a:1",
        rows: &[shows("an unknown host is curl's error and code", "curl(1), common.sh", &[
            "[INFO] Querying registry for permission grant\ncurl: (6) Could not resolve host: nowhere.t",
            "rc=6",
        ])],
    },
    Case {
        name: "refused",
        script: "enroot import -o x.sqsh docker://127.0.0.1:5999#a:1",
        rows: &[shows("a refused connection is curl's error and code", RECORDED, &[
            "curl: (7) Failed to connect to 127.0.0.1 port 5999 after 0 ms: Couldn't connect to server\n",
            "rc=7",
        ])],
    },
    Case {
        name: "tls",
        script: "enroot import -o x.sqsh docker://$HOST#tls:1",
        rows: &[shows("so is a registry without TLS", "curl(1)", &["curl: (35) ", "rc=35"])],
    },
    Case {
        name: "private",
        script: "enroot import -o x.sqsh docker://$HOST#private:1",
        rows: &[shows("so is a private certificate authority", "curl(1)", &[
            "curl: (60) SSL certificate problem: unable to get local issuer certificate\n",
            "rc=60",
        ])],
    },
    Case {
        name: "down",
        script: "enroot import -o x.sqsh docker://$HOST#down:1",
        rows: &[shows("an HTTP error has its name", "common.sh, common::curl", &[
            "returned error code: 503 Service Unavailable\n",
            "rc=1",
        ])],
    },
    Case {
        name: "torn",
        script: "enroot import -o x.sqsh docker://$HOST#torn:1",
        rows: &[shows("a damaged download", "docker.sh, docker::_download_extract", &["Checksum mismatch: ", "rc=1"])],
    },
    Case {
        name: "proxy",
        script: "https_proxy=http://proxy.nowhere:3128 enroot import -o x.sqsh docker://$HOST#plain:1; echo rc=$?
            https_proxy=http://127.0.0.1:9 no_proxy=.sandbox enroot import -o proxied.sqsh docker://$HOST#plain:1 >/dev/null",
        rows: &[
            shows("the caller's proxy is used", "curl(1)", &["curl: (5) Could not resolve proxy: proxy.nowhere\n", "rc=5"]),
            shows("but not for hosts of no_proxy", "curl(1)", &["Permission granted", "rc=0"]),
        ],
    },
    Case {
        name: "daemon",
        script: "enroot import -o x.sqsh dockerd://a:1",
        rows: &[shows("a node has no Docker", "docker.sh, docker::daemon::import", &["[ERROR] Command not found: docker\n", "rc=1"])],
    },
    Case {
        name: "home",
        script: "HOME=/nowhere enroot import -o x.sqsh docker://$HOST#plain:1",
        rows: &[shows("HOME decides where the cache is", "enroot.in, config", &["mkdir: cannot create directory", "/nowhere", "rc=1"])],
    },
    Case {
        name: "tmpdir",
        script: "TMPDIR=/nowhere enroot import -o x.sqsh docker://$HOST#plain:1",
        rows: &[shows("TMPDIR decides where temporary files are", "common.sh, common::mktmpdir", &["mktemp: failed to create directory via template", "/nowhere/enroot.", "rc=1"])],
    },
    Case {
        name: "anonymous",
        script: "enroot import -o x.sqsh docker://basic-$HOST#plain:1",
        rows: &[shows("a Basic registry without a login ends in silence", "docker.sh, docker::_authenticate", &[
            "[INFO] Querying registry for permission grant\n[INFO] Authenticating with user: <anonymous>\n\nrc=1",
        ])],
    },
    Case {
        name: "wrong password",
        script: "mkdir -p wrong && echo \"machine basic-$HOST login ann password no\" >wrong/.credentials
            ENROOT_CONFIG_PATH=$T/wrong enroot import -o x.sqsh docker://basic-$HOST#plain:1",
        rows: &[shows("and so does one with a wrong login", "docker.sh, docker::_authenticate", &[
            "[INFO] Authenticating with user: ann\n[INFO] Using credentials from file: /lustre/",
            "/wrong/.credentials\n\nrc=1",
        ])],
    },
    Case {
        name: "right password",
        script: "mkdir -p home/.config/enroot && echo \"machine basic-$HOST login ann password secret\" >home/.config/enroot/.credentials
            HOME=$T/home enroot import -o found.sqsh docker://basic-$HOST#plain:1
            HOME=$T/home enroot import -o ported.sqsh docker://basic-$HOST:5000#plain:1; ls found.sqsh ported.sqsh
            XDG_CONFIG_HOME=$T enroot import -o x.sqsh docker://basic-$HOST#plain:1",
        rows: &[
            shows("HOME decides where the credentials are", "enroot.in, config", &[
                "[INFO] Authenticating with user: ann\n[INFO] Using credentials from file: /lustre/",
                "/home/.config/enroot/.credentials\n[INFO] Authentication succeeded\n[INFO] Fetching image manifest list\n",
            ]),
            shows("the machine is looked up without the registry's port", "docker.sh, docker::_parse_uri", &[
                "Authentication succeeded", "Authenticating with user: ann", "Authentication succeeded", "found.sqsh\nported.sqsh\n"]),
            shows("so does XDG_CONFIG_HOME", "enroot.in, config", &["user: <anonymous>\n\nrc=1"]),
        ],
    },
    Case {
        name: "port",
        script: "mkdir -p port && echo \"machine basic-$HOST:5000 login ann password secret\" >port/.credentials
            ENROOT_CONFIG_PATH=$T/port enroot import -o x.sqsh docker://basic-$HOST:5000#plain:1",
        rows: &[shows("a machine with a port is never found", "docker.sh, docker::_parse_uri", &["user: <anonymous>\n\nrc=1"])],
    },
    Case {
        name: "two entries",
        script: "mkdir -p two && printf \"machine basic-$HOST login bob password no\\nmachine basic-$HOST login ann password secret\\n\" >two/.credentials
            ENROOT_CONFIG_PATH=$T/two enroot import -o x.sqsh docker://basic-$HOST#plain:1; echo
            ENROOT_CONFIG_PATH=$T/two enroot import -o x.sqsh docker://ann@basic-$HOST#plain:1",
        rows: &[
            shows("of several entries the first is used", "docker.sh, docker::_parse_uri", &["Authenticating with user: bob\n"]),
            shows("even if another user is named", "curl(1), --netrc-file", &["Authenticating with user: ann\n[INFO] Using credentials", "\n\nrc=1"]),
        ],
    },
    Case {
        name: "characters",
        script: "mkdir -p odd && printf '%s\\n' \"machine dollar-$HOST login ann password \\$HOME\" \"machine quoted-$HOST login ann password \\\"secret\\\"\" \
                \"machine blank-$HOST login ann password two words\" >odd/.credentials
            for one in dollar quoted blank; do
                ENROOT_CONFIG_PATH=$T/odd enroot import -o x.sqsh docker://$one-$HOST#plain:1; echo \"$one=$?\"
            done",
        rows: &[shows("a password with $, quotes or blanks does not survive", "common.sh, common::evalnetrc; curl(1)", &[
            "dollar=1", "quoted=1", "blank=1",
        ])],
    },
    Case {
        name: "bearer",
        script: "enroot import -o x.sqsh docker://bearer-$HOST#plain:1; echo
            ENROOT_CONFIG_PATH=$T/none enroot import -o x.sqsh docker://ann@bearer-$HOST#plain:1",
        rows: &[
            shows("of a Bearer registry the manifest is refused", "docker.sh, docker::_download", &[
                "user: <anonymous>\n[INFO] Authentication succeeded\n",
                "[INFO] Fetching image manifest\n[ERROR] URL https://bearer-",
                "returned error code: 401 Unauthorized\n",
            ]),
            shows("or the token", "docker.sh, docker::_authenticate", &["user: ann\n[ERROR] URL https://bearer-", "401 Unauthorized\n", "rc=1"]),
        ],
    },
];
