/* Gets past the includes: it declares what a higher layer defines. */
int worker_wake(void);
int inlined(void);

int base_down(void);
int base_down(void)
{
    return worker_wake() + inlined();
}
