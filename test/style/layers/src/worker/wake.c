int base_down(void);
int worker_sleep(void);
extern int join_done;

int worker_wake(void);
int worker_wake(void)
{
    return base_down() + worker_sleep() + join_done;
}

int worker_sleep(void)
{
    return 0;
}
