/* Lines of the protocol: tab-parted, escaped fields. */
#include <stdlib.h>
#include <string.h>

#include "client.h"

/* A client without memory for a line of text has no way on. */
static void put_char(struct line *line, char c)
{
    if (line->length == line->size) {
        size_t size = line->size ? 2 * line->size : 256;
        char *text = realloc(line->text, size);
        if (text == NULL)
            abort();
        line->text = text;
        line->size = size;
    }
    line->text[line->length++] = c;
}

void line_put(struct line *line, const char *field)
{
    if (line->length > 0)
        put_char(line, '\t');
    for (; *field != '\0'; field++) {
        static const char meant[] = "\\\t\n\r", written[] = "\\tnr";
        const char *found = strchr(meant, *field);
        if (found != NULL) {
            put_char(line, '\\');
            put_char(line, written[found - meant]);
        } else {
            put_char(line, *field);
        }
    }
}

char *line_next(struct line *line)
{
    if (line->text == NULL || line->at > line->length)
        return NULL;
    char *field = line->text + line->at, *to = field;
    const char *from = field, *end = line->text + line->length;
    for (; from < end && *from != '\t'; from++) {
        char c = *from;
        if (c == '\\' && from + 1 < end) {
            c = *++from;
            c = c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
        }
        *to++ = c;
    }
    line->at = (size_t)(from - line->text) + 1;
    *to = '\0'; /* a reply is kept with one byte to spare */
    return field;
}

unsigned long long line_next_number(struct line *line)
{
    const char *field = line_next(line);
    return field == NULL ? 0 : strtoull(field, NULL, 10);
}

void line_free(struct line *line)
{
    free(line->text);
    *line = (struct line){0};
}
