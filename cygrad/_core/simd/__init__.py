"""
Headers that compile C loops for several SIMD targets and dispatch to the best one at run time.

Knows vectors and lanes, never knows arrays. Read ``dispatch.h`` first: templates over the element type are compiled for
each target, and those of this processor are chosen when the library is loaded.
"""
