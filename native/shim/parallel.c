/* Parallel loops. Code that asks for a number of tasks gets exactly that many, each on a thread; code that leaves the
   number open gets as many as the program that loaded it wants. Threads end with their loop, so that none of them is left
   when the library is unloaded. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "edgepack.h"

#define MOST_TASKS 256

static int threads = 1;

TVM_DLL void edgepack_set_threads(int count) {
  int set = count < 1 ? 1 : count > MOST_TASKS ? MOST_TASKS : count;
  __atomic_store_n(&threads, set, __ATOMIC_RELAXED);
}

/* Where tasks wait for each other. */
typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t met;
  int running, waiting;
  unsigned round;
} Meeting;

typedef struct {
  FTVMParallelLambda body;
  void* closure;
  TVMParallelGroupEnv* env;
  int id, code;
  char message[EDGEPACK_MESSAGE];
} Task;

static void everyone_is_here(Meeting* meeting) {
  meeting->waiting = 0;
  meeting->round++;
  pthread_cond_broadcast(&meeting->met);
}

/* Tasks that ended are not waited for. */
static void leave(Meeting* meeting, int tasks) {
  pthread_mutex_lock(&meeting->lock);
  meeting->running -= tasks;
  if (meeting->waiting > 0 && meeting->waiting == meeting->running) everyone_is_here(meeting);
  pthread_mutex_unlock(&meeting->lock);
}

static void* run(void* argument) {
  Task* task = argument;
  edgepack_clear_error();
  task->code = task->body(task->id, task->env, task->closure);
  if (task->code != 0) snprintf(task->message, sizeof task->message, "%s", edgepack_last_error());
  leave(task->env->sync_handle, 1);
  return NULL;
}

HIDDEN int TVMBackendParallelBarrier(int task_id, TVMParallelGroupEnv* env) {
  (void)task_id;
  Meeting* meeting = env->sync_handle;
  if (meeting == NULL) return 0;
  pthread_mutex_lock(&meeting->lock);
  unsigned round = meeting->round;
  if (++meeting->waiting == meeting->running) {
    everyone_is_here(meeting);
  } else {
    while (meeting->round == round) pthread_cond_wait(&meeting->met, &meeting->lock);
  }
  pthread_mutex_unlock(&meeting->lock);
  return 0;
}

HIDDEN int TVMBackendParallelLaunch(FTVMParallelLambda body, void* closure, int num_task) {
  int count = num_task > 0 ? num_task : __atomic_load_n(&threads, __ATOMIC_RELAXED);
  if (count > MOST_TASKS) {
    char message[EDGEPACK_MESSAGE];
    snprintf(message, sizeof message, "a loop of %d parallel tasks, at most %d are run", count, MOST_TASKS);
    TVMAPISetLastError(message);
    return -1;
  }
  Meeting meeting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, count, 0, 0};
  TVMParallelGroupEnv env = {count > 1 ? &meeting : NULL, count};
  if (count == 1) return body(0, &env, closure);
  pthread_t handles[MOST_TASKS];
  static const Task none;
  Task tasks[MOST_TASKS];
  int started = 1, failed = 0;
  for (int id = 0; id < count; ++id) {
    tasks[id] = none;
    tasks[id].body = body, tasks[id].closure = closure, tasks[id].env = &env, tasks[id].id = id;
  }
  for (; started < count; ++started) {
    if (pthread_create(&handles[started], NULL, run, &tasks[started]) != 0) {
      failed = 1;
      leave(&meeting, count - started);
      break;
    }
  }
  run(&tasks[0]);
  for (int id = 1; id < started; ++id) pthread_join(handles[id], NULL);
  pthread_cond_destroy(&meeting.met);
  pthread_mutex_destroy(&meeting.lock);
  edgepack_clear_error();
  if (failed) {
    TVMAPISetLastError("the system has no more threads for a parallel loop");
    return -1;
  }
  for (int id = 0; id < count; ++id) {
    if (tasks[id].code != 0) {
      TVMAPISetLastError(tasks[id].message);
      return tasks[id].code;
    }
  }
  return 0;
}
