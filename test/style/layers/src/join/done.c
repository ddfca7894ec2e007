int worker_wake(void);

int join_done;
int join_wake(void);
int join_wake(void)
{
    return worker_wake();
}
