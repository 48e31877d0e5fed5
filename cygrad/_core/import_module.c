/* PyImport_ImportModule, for all modules of a library: the linker puts this in its place (`--wrap`).
 *
 * A module asks for each module whose types or functions it cimports, 2000 times in all, and nearly always it is there.
 * Python's own function then goes on to the package at the front of the name, and while that is being imported takes
 * its lock, in Python code. Here a module that is there is the answer. */
#include <Python.h>

PyObject *__real_PyImport_ImportModule(const char *name);
PyObject *__wrap_PyImport_ImportModule(const char *name);

PyObject *__wrap_PyImport_ImportModule(const char *name)
{
    PyObject *text = PyUnicode_FromString(name), *module;

    if (text == NULL)
        return NULL;
    module = PyImport_GetModule(text); /* waits if another thread has not finished it */
    Py_DECREF(text);
    if (module == NULL && PyErr_Occurred())
        return NULL;
    if (module == NULL || module == Py_None) { /* None forbids to import the module */
        Py_XDECREF(module);
        return __real_PyImport_ImportModule(name);
    }
    return module;
}
