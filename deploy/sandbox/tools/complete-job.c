/*
 * complete-job JOB STATUS: reports to the controller that a job has ended with a wait status, as a step daemon does.
 * Produces an end that is otherwise impossible on a machine without cgroups: 253 is Slurm's status for "out of memory".
 * Only root and the owner of the job may do this.
 */
#include <stdio.h>
#include <stdlib.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: complete-job JOB STATUS\n");
		return 2;
	}
	slurm_init(NULL);
	if (slurm_complete_job(strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10)) != SLURM_SUCCESS) {
		slurm_perror("complete-job");
		return 1;
	}
	return 0;
}
