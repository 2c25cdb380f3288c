//! The filter of system calls: what no build, test or script needs, and what attacks on the kernel
//! use.
//!
//! Effects: processes.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// System calls with this bit belong to the x32 ABI, whose calls do the same with other numbers.
const X32: i64 = 0x4000_0000;
/// Numbers that only the x32 ABI has.
const X32_ONLY: std::ops::RangeInclusive<i64> = X32 + 512..=X32 + 547;

/// System calls that are refused with `EPERM`.
const REFUSED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Keys of the kernel.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Programs in the kernel, and its observation.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_syslog,
    libc::SYS_fanotify_init,
    // Files without their path.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
];

/// The same, of one kind of processor.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_modify_ldt,
    libc::SYS_kexec_file_load,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// System calls that are answered as if the kernel did not know them, so that programs use another
/// way: `clone3` has its flags where no filter can see them.
const UNKNOWN: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// The flags of `clone` that make a namespace.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// The families of sockets that programs can use.
const FAMILIES: &[i32] = &[
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
];

/// Requests to a terminal that put characters into its input.
const TERMINAL_INPUT: &[u64] = &[0x5412, 0x541c];

/// System calls that set the mode of a file, and which argument is the mode.
const MODES: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mkdirat, 2),
    (libc::SYS_mknodat, 2),
];
#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[(i64, u8)] = &[
    (libc::SYS_chmod, 1),
    (libc::SYS_mkdir, 1),
    (libc::SYS_mknod, 1),
    (libc::SYS_creat, 1),
];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[(i64, u8)] = &[];
/// The number of `fchmodat2` on all processors.
const FCHMODAT2: i64 = 452;
/// A program with this bit runs as the owner of its file, or with its group.
const SET_ID: &[u64] = &[0o4000, 0o2000];

/// Filters the system calls of this process and of everything it starts.
pub(super) fn filter() -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("the filter of system calls: {error}");
    for program in programs().map_err(|error| fail(&error))? {
        apply_filter(&program).map_err(|error| fail(&error))?;
    }
    Ok(())
}

fn programs() -> Result<[BpfProgram; 2], seccompiler::BackendError> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let program = |rules, code: i32| -> Result<BpfProgram, seccompiler::BackendError> {
        let refused = SeccompAction::Errno(code.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?.try_into()
    };
    let unknown = UNKNOWN.iter().flat_map(|call| both_abis(*call));
    let unknown = unknown.map(|call| (call, Vec::new())).collect();
    Ok([
        program(refused()?, libc::EPERM)?,
        program(unknown, libc::ENOSYS)?,
    ])
}

/// Returns the numbers of a system call in the usual ABI and in x32.
fn both_abis(call: i64) -> impl Iterator<Item = i64> {
    let x32 = cfg!(target_arch = "x86_64").then_some(call + X32);
    std::iter::once(call).chain(x32)
}

/// Returns what is refused: system calls, each always or under one of several conditions.
fn refused() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let always = REFUSED.iter().chain(REFUSED_HERE);
    rules.extend(
        always
            .flat_map(|call| both_abis(*call))
            .map(|call| (call, Vec::new())),
    );
    if cfg!(target_arch = "x86_64") {
        rules.extend(X32_ONLY.map(|call| (call, Vec::new())));
    }
    let mut under = |call: i64, conditions: Vec<SeccompCondition>| {
        for call in both_abis(call) {
            let rule = SeccompRule::new(conditions.clone())?;
            rules.entry(call).or_default().push(rule);
        }
        Ok::<(), seccompiler::BackendError>(())
    };
    for flag in NAMESPACES {
        let flag = u64::from(flag.unsigned_abs());
        under(libc::SYS_clone, vec![has_bits(0, flag)?])?;
    }
    let no_family = FAMILIES
        .iter()
        .map(|family| compare(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())));
    under(libc::SYS_socket, no_family.collect::<Result<_, _>>()?)?;
    let raw = u64::from(libc::SOCK_RAW.unsigned_abs());
    for family in [libc::AF_INET, libc::AF_INET6] {
        let family = compare(0, SeccompCmpOp::Eq, u64::from(family.unsigned_abs()))?;
        let kind = compare(1, SeccompCmpOp::MaskedEq(0xf), raw)?;
        under(libc::SYS_socket, vec![family, kind])?;
    }
    for request in TERMINAL_INPUT {
        under(
            libc::SYS_ioctl,
            vec![compare(1, SeccompCmpOp::Eq, *request)?],
        )?;
    }
    for (call, argument) in MODES.iter().chain(MODES_HERE) {
        for bit in SET_ID {
            under(*call, vec![has_bits(*argument, *bit)?])?;
        }
    }
    Ok(rules)
}

/// The condition that an argument has all of some bits.
fn has_bits(argument: u8, bits: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    compare(argument, SeccompCmpOp::MaskedEq(bits), bits)
}

/// The condition on the lower half of an argument.
fn compare(
    argument: u8,
    operation: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile_and_name_no_call_twice() {
        programs().unwrap();
        let mut all: Vec<i64> = REFUSED
            .iter()
            .chain(REFUSED_HERE)
            .chain(UNKNOWN)
            .copied()
            .collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        let conditional = [libc::SYS_clone, libc::SYS_socket, libc::SYS_ioctl];
        assert!(conditional.iter().all(|call| !all.contains(call)));
    }
}
