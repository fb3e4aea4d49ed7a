// Types of CUDA graphs. Part of driver_types.h. The numbers are CUDA's own.
#pragma once

#include <stddef.h>

#include "cuda_on_cpu/array_types.h"
#include "cuda_on_cpu/memory_types.h"
#include "vector_types.h"

typedef struct CUgraph_st* cudaGraph_t;
typedef struct CUgraphExec_st* cudaGraphExec_t;
typedef struct CUgraphNode_st* cudaGraphNode_t;
typedef unsigned long long cudaGraphConditionalHandle;

enum cudaGraphNodeType {
    cudaGraphNodeTypeKernel = 0,
    cudaGraphNodeTypeMemcpy = 1,
    cudaGraphNodeTypeMemset = 2,
    cudaGraphNodeTypeHost = 3,
    cudaGraphNodeTypeGraph = 4,
    cudaGraphNodeTypeEmpty = 5,
    cudaGraphNodeTypeWaitEvent = 6,
    cudaGraphNodeTypeEventRecord = 7,
    cudaGraphNodeTypeExtSemaphoreSignal = 8,
    cudaGraphNodeTypeExtSemaphoreWait = 9,
    cudaGraphNodeTypeMemAlloc = 10,
    cudaGraphNodeTypeMemFree = 11,
    cudaGraphNodeTypeConditional = 13,
    cudaGraphNodeTypeCount
};
typedef enum cudaGraphNodeType cudaGraphNodeType;

// What a kernel node launches. For a node that a capture made, func and kernelParams are null.
struct cudaKernelNodeParams {
    void* func;
    dim3 gridDim;
    dim3 blockDim;
    unsigned sharedMemBytes;
    void** kernelParams;
    void** extra;
};
typedef struct cudaKernelNodeParams cudaKernelNodeParams;
typedef struct cudaKernelNodeParams cudaKernelNodeParamsV2;

// `height` rows of `width` elements of `elementSize` bytes (1, 2 or 4), each set to the low bytes
// of `value`.
struct cudaMemsetParams {
    void* dst;
    size_t pitch;
    unsigned value;
    unsigned elementSize;
    size_t width;
    size_t height;
};
typedef struct cudaMemsetParams cudaMemsetParams;
typedef struct cudaMemsetParams cudaMemsetParamsV2;

struct cudaHostNodeParams {
    void (*fn)(void* userData);
    void* userData;
};
typedef struct cudaHostNodeParams cudaHostNodeParams;
typedef struct cudaHostNodeParams cudaHostNodeParamsV2;

struct cudaMemcpyNodeParams {
    int flags;
    int reserved[3];
    struct cudaMemcpy3DParms copyParams;
};
typedef struct cudaMemcpyNodeParams cudaMemcpyNodeParams;

enum cudaGraphChildGraphNodeOwnership {
    cudaGraphChildGraphOwnershipClone = 0,
    cudaGraphChildGraphOwnershipMove = 1,
};
typedef enum cudaGraphChildGraphNodeOwnership cudaGraphChildGraphNodeOwnership;

struct cudaChildGraphNodeParams {
    cudaGraph_t graph;
    enum cudaGraphChildGraphNodeOwnership ownership;
};
typedef struct cudaChildGraphNodeParams cudaChildGraphNodeParams;
struct cudaEventRecordNodeParams {
    cudaEvent_t event;
};
typedef struct cudaEventRecordNodeParams cudaEventRecordNodeParams;
struct cudaEventWaitNodeParams {
    cudaEvent_t event;
};
typedef struct cudaEventWaitNodeParams cudaEventWaitNodeParams;
// `dptr` is set when the node is added.
struct cudaMemAllocNodeParams {
    struct cudaMemPoolProps poolProps;
    const struct cudaMemAccessDesc* accessDescs;
    size_t accessDescCount;
    size_t bytesize;
    void* dptr;
};
typedef struct cudaMemAllocNodeParams cudaMemAllocNodeParams;
typedef struct cudaMemAllocNodeParams cudaMemAllocNodeParamsV2;
struct cudaMemFreeNodeParams {
    void* dptr;
};
typedef struct cudaMemFreeNodeParams cudaMemFreeNodeParams;

enum cudaGraphConditionalHandleFlags { cudaGraphCondAssignDefault = 1 };
enum cudaGraphConditionalNodeType {
    cudaGraphCondTypeIf = 0,
    cudaGraphCondTypeWhile = 1,
    cudaGraphCondTypeSwitch = 2,
};
typedef enum cudaGraphConditionalHandleFlags cudaGraphConditionalHandleFlags;
struct cudaConditionalNodeParams {
    cudaGraphConditionalHandle handle;
    enum cudaGraphConditionalNodeType type;
    unsigned size;  // bodies: 1 or 2 for If, 1 for While, 1 or more for Switch
    // Set when the node is added: the graphs of its bodies.
    cudaGraph_t* phGraph_out;
};
typedef struct cudaConditionalNodeParams cudaConditionalNodeParams;

struct cudaGraphNodeParams {
    enum cudaGraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        cudaKernelNodeParamsV2 kernel;
        struct cudaMemcpyNodeParams memcpy;
        cudaMemsetParamsV2 memset;
        cudaHostNodeParamsV2 host;
        struct cudaChildGraphNodeParams graph;
        struct cudaEventWaitNodeParams eventWait;
        struct cudaEventRecordNodeParams eventRecord;
        cudaMemAllocNodeParamsV2 alloc;
        struct cudaMemFreeNodeParams free;
        struct cudaConditionalNodeParams conditional;
    };
    long long reserved2;
};
typedef struct cudaGraphNodeParams cudaGraphNodeParams;

typedef struct cudaGraphEdgeData_st {
    unsigned char from_port;
    unsigned char to_port;
    unsigned char type;
    unsigned char reserved[5];
} cudaGraphEdgeData;

enum cudaGraphExecUpdateResult {
    cudaGraphExecUpdateSuccess = 0,
    cudaGraphExecUpdateError = 1,
    cudaGraphExecUpdateErrorTopologyChanged = 2,
    cudaGraphExecUpdateErrorNodeTypeChanged = 3,
    cudaGraphExecUpdateErrorFunctionChanged = 4,
    cudaGraphExecUpdateErrorParametersChanged = 5,
    cudaGraphExecUpdateErrorNotSupported = 6,
    cudaGraphExecUpdateErrorUnsupportedFunctionChange = 7,
    cudaGraphExecUpdateErrorAttributesChanged = 8,
};
typedef enum cudaGraphExecUpdateResult cudaGraphExecUpdateResult;
typedef struct cudaGraphExecUpdateResultInfo_st {
    enum cudaGraphExecUpdateResult result;
    cudaGraphNode_t errorNode;
    cudaGraphNode_t errorFromNode;
} cudaGraphExecUpdateResultInfo;

enum cudaGraphMemAttributeType {
    cudaGraphMemAttrUsedMemCurrent = 0,
    cudaGraphMemAttrUsedMemHigh = 1,
    cudaGraphMemAttrReservedMemCurrent = 2,
    cudaGraphMemAttrReservedMemHigh = 3,
};
typedef enum cudaGraphMemAttributeType cudaGraphMemAttributeType;
enum cudaGraphInstantiateFlags {
    cudaGraphInstantiateFlagAutoFreeOnLaunch = 1,
    cudaGraphInstantiateFlagUpload = 2,
    cudaGraphInstantiateFlagDeviceLaunch = 4,
    cudaGraphInstantiateFlagUseNodePriority = 8,
};
typedef enum cudaGraphInstantiateFlags cudaGraphInstantiateFlags;
enum cudaStreamUpdateCaptureDependenciesFlags {
    cudaStreamAddCaptureDependencies = 0,
    cudaStreamSetCaptureDependencies = 1,
};
typedef enum cudaStreamUpdateCaptureDependenciesFlags cudaStreamUpdateCaptureDependenciesFlags;
