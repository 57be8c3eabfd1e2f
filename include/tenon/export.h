/* Defines TN_API, which marks the symbols that the shared library exports. */
#ifndef TENON_EXPORT_H
#define TENON_EXPORT_H

#if defined(__GNUC__)
#define TN_API __attribute__((visibility("default")))
#else
#define TN_API
#endif

#endif
