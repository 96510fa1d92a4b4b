//! What `srun --container-image` prints, and what the program in the container finds.

use std::{fs, path::Path};

use super::{Case, Place, hides, shows};

/// Prints what it finds. It runs in a container.
const PROBE: &str = r#"
echo "split=${SPLIT-no} dotenv=$(printf %s "$DOTENV" | base64)"
echo "directory=$(pwd)"
echo "lang=${LANG-none} lc_all=${LC_ALL-none} profile=${PROFILE-none} enroot=${ENROOT_X-none}"
echo "colour=$COLOUR shape=$SHAPE tone=$TONE size=$SIZE only=$ONLY"
echo "torch=$RANK/$LOCAL_RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT"
echo "uid_map=$(tr -s ' ' </proc/self/uid_map)"
echo "tmp=$(stat -c '%a %U' /tmp) user=$(id -un) home=$HOME $(ls -A "$HOME" | wc -l)"
for place in "$HOME" / /opt /plain /written /tmp /scratch; do
    if touch "$place/touched" 2>/dev/null; then echo "write=$place"; else echo "read=$place"; fi
done
ls -d /in* | sed 's/^/found=/'
echo "scratch=$(stat -f -c %T /scratch)"
"#;

pub(super) fn prepare(place: &Place) {
    place.push("rich", &[
        (
            "etc/environment",
            "PATH=/usr/local/bin:/usr/bin:/bin\nCOLOUR=image\nSHAPE=image\nSIZE='image'\nTONE=${COLOUR}s\nENROOT_X=1\nPYTORCH_VERSION=2.5\n",
        ),
        ("etc/profile", "export PROFILE=read\n"),
    ]);
    place.push("cuda", &[(
        "etc/environment",
        "NVIDIA_VISIBLE_DEVICES=all\nNVIDIA_DRIVER_CAPABILITIES=compute,utility\nNVIDIA_REQUIRE_CUDA='cuda>=12.8'\n",
    )]);
    let debian = place.push(
        "debian",
        &[
            ("etc/environment", "PATH=/opt/python/bin:/usr/bin:/bin\n"),
            ("etc/profile", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games\nexport PATH\n"),
            ("opt/python/bin/python", "#!/bin/sh\necho here\n"),
        ],
    );
    fs::remove_file(debian.join("bin/python")).unwrap();
    let began = format!("{}/began", place.dir);
    place
        .push("slow", &[("etc/profile", &format!("if [ -d {began} ]; then : >{began}/now; sleep 60; fi\n"))]);
    let late = place.push("late", &[]);
    fs::write(late.with_extension("held"), "").unwrap();
    let t = &place.dir;
    let images = ["plain", "rich", "cuda", "debian", "slow"].map(|name| {
        format!("enroot import -o '{t}/{name}.sqsh' docker://{}#{name}:1 2>/dev/null", place.host)
    });
    place.sandbox.login(&images.join(" && "));
    place.sandbox.login(&format!(
        "cd '{t}' && mkdir -m 000 closed && mkdir plain written began 'odd $(id -un)' && head -c 100000 plain.sqsh >torn.sqsh \
         && echo abc >text.sqsh && cp plain.sqsh unreadable.sqsh && chmod 000 unreadable.sqsh \
         && cp plain.sqsh damaged.sqsh"
    ));
    damage(&place.on_host(&format!("{t}/damaged.sqsh")));
    fs::write(place.on_host(&format!("{t}/probe")), PROBE).unwrap();
}

/// Overwrites compressed data: the inode table, whose place is at byte 64 of the superblock.
fn damage(image: &Path) {
    let mut bytes = fs::read(image).unwrap();
    let table = usize::try_from(u64::from_le_bytes(bytes[64..72].try_into().unwrap())).unwrap();
    bytes[table + 2..table + 200].fill(0xff);
    fs::write(image, bytes).unwrap();
}

const FAILED: &str = "recorded output of failed steps";
const ENVIRONMENT: &str = "pyxis_slurmstepd.c, spank_import_container_env";
const START: &str = "pyxis_slurmstepd.c, enroot_create_start_config";

/// Slurm's own lines after a failed task.
const PLUGIN: &str = "error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1";
const STACK: &str = "error: Failed to invoke spank plugin stack";

pub(super) const CASES: &[Case] = &[
    Case {
        name: "environment",
        script: r#"export DOTENV=$'A=1\nSPLIT=yes' LANG=C.UTF-8 LC_ALL=C.UTF-8 COLOUR=job SHAPE=job SIZE=job ONLY=job
            srun -n1 --container-image="$T/rich.sqsh" --container-env=DOTENV,SHAPE,LC_ALL \
                --container-mounts="$T:$T,tmpfs:/scratch,$T/plain:/plain:ro+bogus,$T/written:/written:bogus,$T/plain:/in\$COLOUR,$T/plain:/in-\`hostname\`,$T/plain:/in\"quoted\",$T/plain:/in\\\$COLOUR" \
                bash "$T/probe""#,
        rows: &[
            shows("a newline in a listed variable makes two variables", START, &["split=yes"]),
            shows("the listed variable itself is whole", ENVIRONMENT, &["dotenv=QT0xClNQTElUPXllcw=="]),
            shows("the working directory is the image's", "docker.sh, docker::configure", &["directory=/workspace\n"]),
            shows("LANG is removed, and LC_ALL not if it is listed", ENVIRONMENT, &["lang=none lc_all=C.UTF-8"]),
            shows("the image's shell reads /etc/profile", "enroot-switchroot.c", &["profile=read"]),
            shows("Enroot's own variables do not enter", "common.sh, common::envfmt", &["enroot=none"]),
            shows("the image's variables override the job's", ENVIRONMENT, &["colour=image"]),
            shows("but not listed ones", ENVIRONMENT, &["shape=job"]),
            shows("an image's variable may use the job's", "common.sh, common::envsubst", &["tone=jobs"]),
            shows("quotes around a value are removed", "common.sh, common::envfmt", &["size=image"]),
            shows("other variables of the job are there", ENVIRONMENT, &["only=job"]),
            shows("PyTorch's variables are set for an image with it", "50-slurm-pytorch.sh", &["torch=0/0 of 1 at node0", ":61"]),
            shows("there is a user namespace", "enroot-nsenter.c", &["uid_map= 2001 2001 1"]),
            shows("/tmp is the user's", "10-system.fstab", &["tmp=755 tao user=tao"]),
            shows("the home directory is empty", "10-shadow.sh", &["home=/home/tao 0"]),
            shows("and read-only, like the rest of the image", "runtime.sh, runtime::_start", &["read=/home/tao\nread=/\nread=/opt\n"]),
            shows("a mount is read-only if it says so", "enroot-mount.c", &["read=/plain\n"]),
            shows("unknown flags of a mount have no effect", "enroot-mount.c", &["write=/written\n"]),
            shows("a tmpfs can be mounted", "args.c, add_mount", &["write=/tmp\nwrite=/scratch\n", "scratch=tmpfs"]),
            shows("a shell runs the commands in a mount's path", START, &["found=/in-node0"]),
            shows("takes quotes away", START, &["found=/inquoted\n"]),
            shows("and replaces variables", START, &["found=/injob\n"]),
            shows("also after a backslash, which stays", "pyxis_slurmstepd.c, fstab_escape", &["found=/in\\job\n"]),
        ],
    },
    Case {
        name: "broken environment",
        script: r#"DOTENV=$'A=1\nPATH=/nowhere' srun -n1 --container-image="$T/plain.sqsh" --container-env=DOTENV true"#,
        rows: &[shows("a PATH on the second line of a variable breaks the container", START, &[
            "pyxis: container start failed with error code: 127",
            "pyxis: printing enroot log file:",
            "exec: sh: not found",
            "pyxis: container was not started successfully by another task",
            PLUGIN,
            STACK,
        ])],
    },
    Case {
        name: "devices",
        script: r#"show() { srun -n1 --container-image="$T/$1.sqsh" $2 bash -c 'echo "cli=$(cat /etc/nvidia-container-cli) seen=$NVIDIA_DRIVER_CAPABILITIES"' 2>&1; }
            show plain; show cuda; export NVIDIA_DRIVER_CAPABILITIES=all; show cuda; show cuda --container-env=NVIDIA_DRIVER_CAPABILITIES
            NVIDIA_DISABLE_REQUIRE=1 show cuda; NVIDIA_VISIBLE_DEVICES=void show cuda
            NVIDIA_DRIVER_CAPABILITIES=magic show cuda; MELLANOX_VISIBLE_DEVICES=0 show plain"#,
        rows: &[
            shows("an image without devices gets none", "98-nvidia.sh", &["cli= seen=\n"]),
            shows("the image's variables choose the driver's files", "98-nvidia.sh", &[
                "cli=--device=all --compute --utility --require=cuda>=12.8 seen=compute,utility\n",
            ]),
            shows("the job's override them, in the hook only", "98-nvidia.sh", &[
                "cli=--device=all --compute --compat32 --display --graphics --utility --video --require=cuda>=12.8 seen=compute,utility\n",
            ]),
            shows("and in the program if they are listed", ENVIRONMENT, &["--video --require=cuda>=12.8 seen=all\n"]),
            shows("a job needs no driver of a version", "98-nvidia.sh", &["seen=all\n", "--video seen=compute,utility\n"]),
            shows("or no devices", "98-nvidia.sh", &["--video seen=compute,utility\n", "cli= seen=compute,utility\n"]),
            shows("an unknown capability", "98-nvidia.sh", &[
                "pyxis: container start failed with error code: 1",
                "[ERROR] Unknown NVIDIA driver capability: magic",
            ]),
            shows("an unknown InfiniBand card", "99-mellanox.sh", &[
                "pyxis: container start failed with error code: 1",
                "[ERROR] Unknown MELLANOX device id: 0",
            ]),
        ],
    },
    Case {
        name: "home",
        script: r#"HOME=$T/none/x srun -n1 --container-image="$T/plain.sqsh" bash -c 'echo "home=$HOME"'
            HOME=$T/written srun -n1 --container-image="$T/plain.sqsh" --container-mount-home bash -c 'touch "$HOME/home"; echo "mounted=$HOME"'
            HOME=$T srun -n1 --container-image="$T/plain.sqsh" --container-env=HOME true"#,
        rows: &[
            shows("HOME of the job is not that of the container", "enroot-switchroot.c, sys_login", &["home=/home/tao\n"]),
            shows("but decides which directory is mounted", "10-home.sh", &["mounted=/lustre/", "/written\n"]),
            shows("if it is listed, it must be in the container", "enroot-switchroot.c, sys_login", &[
                "pyxis: container start failed with error code: 1",
                "enroot-switchroot: failed to change directory: /lustre/",
                ": No such file or directory",
            ]),
        ],
    },
    Case {
        name: "root",
        script: r#"srun -n1 --container-image="$T/plain.sqsh" --container-writable --container-remap-root \
            bash -c 'for place in / /opt /bin /etc; do touch $place/x && echo "write=$place"; done; echo "uid=$(id -u)"; exit 7'"#,
        rows: &[
            shows("--container-writable makes every directory writable", "enroot.in, ENROOT_ROOTFS_WRITABLE", &[
                "write=/\n", "write=/opt\n", "write=/bin\n", "write=/etc\n",
            ]),
            shows("--container-remap-root makes the user root", "enroot-nsenter.c", &["uid=0"]),
            shows("the program's code is srun's", "recorded output of steps", &["Exited with exit code 7", "rc=7"]),
        ],
    },
    Case {
        name: "missing image",
        script: r#"srun -n1 --container-image="$T/none.sqsh" true"#,
        rows: &[shows("the cause, and two children that failed", FAILED, &[
            "pyxis: child ",
            " failed with error code: 1",
            "pyxis: failed to create container filesystem for image: /lustre/",
            "pyxis: printing enroot log file:",
            "pyxis:     [ERROR] No such file or directory: /lustre/",
            PLUGIN,
            STACK,
            "pyxis: child ",
            " failed with error code: 1",
            "rc=1",
        ])],
    },
    Case {
        name: "invalid images",
        script: r#"srun -n1 --container-image="$T/text.sqsh" true; echo "text=$?"; srun -n1 --container-image="$T/unreadable.sqsh" true"#,
        rows: &[
            shows("what is no SquashFS file", FAILED, &["[ERROR] Invalid image format: /lustre/", "/text.sqsh", "text=1"]),
            shows("an unreadable file is the same", "runtime.sh, runtime::create", &["text=1", "[ERROR] Invalid image format: /lustre/", "/unreadable.sqsh"]),
        ],
    },
    Case {
        name: "damaged images",
        script: r#"srun -n1 --container-image="$T/torn.sqsh" true; echo "torn=$?"; srun -n1 --container-image="$T/damaged.sqsh" true"#,
        rows: &[
            shows("a truncated file", "unsquashfs(1)", &["FATAL ERROR", "torn=1"]),
            shows("a damaged one", "unsquashfs(1)", &["torn=1", "failed to create container filesystem", "uncompress failed with error code"]),
            hides("are not of an invalid format", "runtime.sh, runtime::create", &[], &["Invalid image format"]),
        ],
    },
    Case {
        name: "missing mount",
        script: r#"srun -n1 --container-image="$T/plain.sqsh" --container-mounts=/nope true"#,
        rows: &[
            shows("the log of the last command follows", FAILED, &[
                "pyxis: --container-mounts: source path does not exist: /nope",
                "pyxis: couldn't create enroot start configuration script",
                "pyxis: printing enroot log file:",
                "pyxis:     [INFO] Extracting squashfs filesystem...",
                "pyxis:     Parallel unsquashfs: Using ",
                " inodes (",
                "pyxis:     created ",
                " directories",
                "pyxis: container was not started successfully by another task",
                PLUGIN,
                STACK,
            ]),
            hides("no child has failed", FAILED, &[], &["pyxis: child"]),
        ],
    },
    Case {
        name: "forbidden mount",
        script: r#"srun -n1 --container-image="$T/plain.sqsh" --container-mounts="$T/closed/x:/x" true; echo "closed=$?"
            srun -n1 --container-image="$T/plain.sqsh" --container-mounts="$T/plain:/bin/sh/x" true"#,
        rows: &[
            shows("enroot's own error", "enroot-mount.c", &[
                "pyxis: container start failed with error code: 1",
                "pyxis:     enroot-mount: failed to mount: /lustre/",
                "/closed/x at /",
                "/x: No such file or directory",
                "closed=1",
            ]),
            shows("and that of an impossible target", "enroot-mount.c", &["closed=1", "enroot-mount: failed to resolve path: /tmp/", "/bin/sh/x: Not a directory"]),
        ],
    },
    Case {
        name: "import",
        script: "srun -n1 --container-image=$HOST#plain:1 echo begun; srun -n1 --container-image=$HOST#plain:9 true",
        rows: &[
            shows("an import is announced", "pyxis_slurmstepd.c, enroot_container_create", &[
                "pyxis: importing docker image: t",
                "pyxis: imported docker image: t",
                "begun\n",
            ]),
            shows("a failed one", "pyxis_slurmstepd.c, enroot_container_create", &[
                "begun",
                "pyxis: child ",
                " failed with error code: 1",
                "pyxis: failed to import docker image: t",
                "#plain:9\n",
                "pyxis: printing enroot log file:",
                "404 Not Found",
                PLUGIN,
                "pyxis: child ",
            ]),
            hides("has no other line", "pyxis_slurmstepd.c, enroot_container_create", &[], &["couldn't start container", "was not started successfully"]),
        ],
    },
    Case {
        name: "import codes",
        script: "srun -n1 --container-image=nowhere.$HOST#a:1 true; echo; srun -n1 --container-image=127.0.0.1:5999#a:1 true; echo; srun -n1 --container-image=dockerd://a:1 true",
        rows: &[
            shows("the child's code is curl's", "enroot.c, child_wait", &[
                " failed with error code: 6\n", "curl: (6)", " failed with error code: 7\n", "curl: (7)",
            ]),
            shows("a Docker daemon", "docker.sh, docker::daemon::import", &[
                "pyxis: failed to import docker image: dockerd://a:1", "[ERROR] Command not found: docker",
            ]),
        ],
    },
    Case {
        name: "import environment",
        script: "TMPDIR=/nowhere srun -n1 --container-image=$HOST#plain:1 true; echo; ENROOT_TEMP_PATH=/nowhere srun -n1 --container-image=$HOST#plain:1 echo begun
            HOME=/nowhere srun -n1 --container-image=$T/plain.sqsh true; echo; https_proxy=http://proxy.nowhere:1 srun -n1 --container-image=$HOST#plain:1 true",
        rows: &[
            shows("the job's TMPDIR reaches the import", "pyxis_slurmstepd.c, enroot_set_env", &[
                "failed to import docker image", "pyxis:     mktemp: failed to create directory via template",
            ]),
            shows("but not ENROOT_TEMP_PATH", "pyxis_slurmstepd.c, enroot_deny_env", &["mktemp", "begun"]),
            shows("its HOME reaches every command of enroot", "enroot.in, config", &["begun", "failed to create container filesystem", "mkdir: cannot create directory"]),
            shows("and its proxy", "pyxis_slurmstepd.c, enroot_set_env", &[" failed with error code: 5\n", "curl: (5)"]),
        ],
    },
    Case {
        name: "python",
        script: r#"srun -n1 --container-image="$T/debian.sqsh" bash -c 'echo "path=$PATH"; exec python'"#,
        rows: &[shows("Debian's profile hides the image's own python", "enroot-switchroot.c; Debian's /etc/profile", &[
            "path=/usr/local/bin:/usr/bin:/bin:/usr/local/games", "exec: python: not found", "rc=127",
        ])],
    },
    Case {
        name: "two tasks",
        script: r#"srun -n2 -l --container-image="$T/plain.sqsh" stat -L -c 'inode=%i' /proc/self/ns/mnt | sed 's/^. *//;s/^: //' | sort -u
            srun -n2 --container-image="$T/none.sqsh" true"#,
        rows: &[
            shows("the tasks of a node share a container", "pyxis_slurmstepd.c, enroot_start_once", &["inode="]),
            shows("and its failure", "pyxis_slurmstepd.c, enroot_start_once", &["No such file or directory", "rc=1"]),
            // Before or after the log of the first.
            shows("which the other one tells of", "pyxis_slurmstepd.c, enroot_start_once", &[
                "pyxis: container was not started successfully by another task",
            ]),
        ],
    },
    Case {
        name: "named",
        script: r#"srun -n1 --container-name=keep --container-image="$T/plain.sqsh" --container-writable bash -c 'echo kept >/opt/kept'
            srun -n1 --container-name=keep --container-image="$T/rich.sqsh" cat /opt/kept /etc/profile
            srun -n1 --container-name=keep:create --container-image="$T/plain.sqsh" true; srun -n1 --container-name=nosuch true
            srun -n1 --container-image="$T/plain.sqsh" --container-image="$T/rich.sqsh" true; srun -n1 enroot remove -f pyxis_keep"#,
        rows: &[
            shows("a named container stays, whatever image the next step names", "pyxis_slurmstepd.c, slurm_spank_user_init", &[
                "kept\n", "cat: can't open '/etc/profile'",
            ]),
            shows("unless it must be new", "pyxis_slurmstepd.c, slurm_spank_user_init", &["\"create\" flag was passed to --container-name but the container already exists"]),
            shows("without an image it must exist", "pyxis_slurmstepd.c, slurm_spank_user_init", &["a container with name \"pyxis_nosuch\" does not exist"]),
            shows("a second, different image is refused", "args.c, spank_option_image", &["pyxis: --container-image specified multiple times"]),
        ],
    },
    Case {
        name: "options",
        script: r#"PYXIS_CONTAINER_IMAGE="$T/plain.sqsh" PYXIS_CONTAINER_WORKDIR=/opt srun -n1 pwd
            srun -n1 --container-image="$T/plain.sqsh" --container-mounts=data:/data true; srun -n1 --container-image="$T/plain.sqsh" --container-workdir=/nowhere true"#,
        rows: &[
            shows("variables can say what options say", "args.c, pyxis_args_check_environment_variables", &["/opt\n"]),
            shows("a source is a path, tmpfs or umount", "args.c, add_mount", &["mount source must be a relative path, an absolute path", "could not add mount entry: data:/data"]),
            shows("a missing working directory", "pyxis_slurmstepd.c, slurm_spank_task_init", &["pyxis: couldn't chdir to /nowhere: No such file or directory"]),
        ],
    },
    Case {
        name: "unknown option",
        script: "srun -n1 --container-bogus true",
        rows: &[shows("is srun's error", FAILED, &[
            "srun: unrecognized option '--container-bogus'\nTry \"srun --help\" for more information\n", "rc=255",
        ])],
    },
    Case {
        name: "batch jobs",
        script: r#"unset ${!SLURM_@}
            submit() { sbatch -Q --wait -t 5 --mem=200 -o "$T/batch.out" >/dev/null; echo "code=$?"; cat "$T/batch.out"; }
            submit <<END
#!/bin/sh
#SBATCH -N1 -n1 --container-image=$T/rich.sqsh
cat /etc/profile
END
            submit <<END
#!/bin/bash
#SBATCH -N2 -n2
srun -l --container-image="$T/rich.sqsh" --container-mounts="$T" sh -c 'echo "\$PROFILE at \$SLURMD_NODENAME"; exit \$((\$SLURM_PROCID * 7))' 2>&1 | sort
exit \${PIPESTATUS[0]}
END"#,
        rows: &[
            shows("the script of a job runs in the container that its directive names", "recorded sbatch with the directive", &[
                "code=0\nexport PROFILE=read\n",
            ]),
            shows("each node of a step has a container, and the code is the tasks' highest", "recorded steps on two nodes", &[
                "code=7\n", "0: read at node0", "1: read at node0", "Exited with exit code 7",
            ]),
        ],
    },
    Case {
        name: "signal during the import",
        script: "srun -n1 --container-image=$HOST#late:1 true & srun=$!
            while kill -0 $srun 2>/dev/null; do sleep 0.2; scancel --signal=USR1 $SLURM_JOB_ID; done; wait $srun",
        rows: &[shows("it ends the import", "enroot.c, child_wait", &[
            "pyxis: child ", " terminated with signal 10", "pyxis: failed to import docker image", PLUGIN, "rc=1",
        ])],
    },
    Case {
        name: "signal during the start",
        script: r#"srun -n1 --container-image="$T/slow.sqsh" --container-mounts="$T" true & srun=$!
            until [ -e "$T/began/now" ] || ! kill -0 $srun 2>/dev/null; do sleep 0.1; done
            scancel --signal=USR1 $SLURM_JOB_ID; wait $srun"#,
        rows: &[shows("it ends the container", "pyxis_slurmstepd.c, enroot_container_start", &[
            "pyxis: container exited too soon", "pyxis: container was not started successfully by another task", PLUGIN, "rc=1",
        ])],
    },
];
