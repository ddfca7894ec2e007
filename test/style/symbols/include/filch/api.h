#define FILCH_API __attribute__((visibility("default")))
#ifndef FILCH_INLINE
#define FILCH_INLINE static inline
#endif

FILCH_API int filch_plain(int x);

FILCH_API __attribute__((format(printf, 1, 2))) void
filch_attributes(const char *format, ...);

FILCH_API extern const int filch_data[2];

/* FILCH_API int filch_only_in_a_comment(void);
 */
FILCH_API int filch_never_defined(void);

int filch_not_marked(void);

FILCH_INLINE int filch_inlined(int x)
{
    return x;
}
